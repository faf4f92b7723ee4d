"""See the README of vsr-openvino."""
