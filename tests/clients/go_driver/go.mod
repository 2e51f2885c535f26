module kaas.tests/driver

go 1.24.0
