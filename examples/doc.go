// Package examples holds small programs that show Spillway at work, each in a
// directory of its own.
package examples
