package config

import _ "embed"

// Schema is the JSON schema of the file, by which editors complete and check it.
//
//go:embed schema.json
var Schema string
