"""What the operator reads of the cluster's objects, listed once: small, immutable records of the fields that it uses.

Raw JSON becomes a record in `records.reading`, and nowhere else. Nothing that decides reaches into raw JSON.
"""
