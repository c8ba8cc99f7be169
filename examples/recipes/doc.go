// Package recipes has one small directory for each router, framework and protocol: the lines
// that protect a server with it. One test holds all of them to the same contract.
package recipes
