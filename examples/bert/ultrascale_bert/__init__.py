"""BERT pre-training under torchrun: elastic, checkpointed, on CPU, NVIDIA and Trainium."""
