"""A DispatchBackend as Starts rest on it: its proof, its status, and what takes the proof away."""
