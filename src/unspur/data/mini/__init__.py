"""The embedded digits: 10,000 + 2,000 real ones of MNIST, in one small file."""
