//go:build !unix

package main

import "time"

var start = time.Now()

// processorTime is the time since the start, where the system does not say what a process has used.
func processorTime() time.Duration { return time.Since(start) }
