// Package logs writes logs without having any caller wait for a full disk, or for a pipe whose reader
// has stopped.
//
// Lines wait in a [Queue] of at most 1024 lines and 1 MiB, and one goroutine writes them. Lines are
// dropped and counted while the queue is full, and where a write fails.
//
// An [AccessLog] writes one line of JSON for each request that is sampled, at a bounded rate. A full file is
// renamed to FILE.1, so that both together use at most twice max_bytes.
package logs
