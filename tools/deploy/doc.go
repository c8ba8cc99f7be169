// Package deploy tests the files in deploy/: each file is checked by the program that reads it, or
// by the code of that program, and unknown fields are mistakes. What the files say about the
// proxy is tested with the proxy.
package deploy
