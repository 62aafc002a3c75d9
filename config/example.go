package config

import _ "embed" // the example

// Example is a commented file with every key.
func Example() string { return example }

//go:embed example.yaml
var example string
