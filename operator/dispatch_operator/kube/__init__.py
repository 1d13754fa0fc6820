"""The API server: requests and their failures, what the watches told, the Lease, and the probes of the pod."""
