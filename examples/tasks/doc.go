// Package tasks has what a Go team does on the first day, each as a program without Spillway
// and the same one with it. A test runs the second one, and counts the lines that it adds.
package tasks
