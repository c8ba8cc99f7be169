// Package cputime reads the processor time of this process.
package cputime
