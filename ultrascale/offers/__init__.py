"""What AWS sells at the moment: Capacity Blocks, training plans and Spot, and buying one of it."""
