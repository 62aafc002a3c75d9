// Package config reads what an operator wrote about one journald: a YAML file, JOURNALD_ variables and flags.
//
// Flags beat the environment, the environment beats the file, the file beats the defaults, and each effective value
// knows where it came from. Nothing is guessed and nothing is ignored: an unknown key, a wrong type, a value out of its
// range or a feature that this version does not have is refused, all of them at once, each with its line and, where
// there is one, the name that was most likely meant.
package config
