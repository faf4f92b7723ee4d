"""See the README of vsr-onnx."""
