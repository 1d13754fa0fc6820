"""A fake API server in a process of its own: ten thousand Starts cost it nothing, and its CPU is nobody else's.

What Kubernetes, Trainer and JobSet answer is shown by the tests on the real control plane. Here only the amount counts:
objects of their real size, lists in pages, and as many events of a Start as the real ones send.
"""
