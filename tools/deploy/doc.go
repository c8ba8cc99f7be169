// Package deploy tests the files in deploy/ that other programs read: each file is decoded
// by the code of that program, with unknown fields refused. What the files say about the
// proxy itself is tested with the proxy.
package deploy
