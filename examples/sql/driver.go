//go:build sqlite || thorough

package main

import _ "modernc.org/sqlite" // the driver
