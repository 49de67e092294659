"""What emitted models call: a file is written into a model's file if it is used.

Each file needs PyTorch alone, and imports from its neighbours what it needs of them.
"""
