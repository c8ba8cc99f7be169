// Package examples holds small programs that show Spillway at work, each in a
// separate directory.
package examples
