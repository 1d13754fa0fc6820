"""What Prometheus is told: instruments that the other rooms use in one line each, and the text of all of them.

No label has a value that a user chooses: what is counted by job or by name would grow without bound. What can be read
off the queues, the watches and the store is not counted twice; `controllers.collector` reads it when it is asked for.
"""
