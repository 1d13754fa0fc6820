"""What runs: kopf's frame, the work queue, and a controller for each thing that is looked after."""
