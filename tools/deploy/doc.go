// Package deploy has the tests of what is in deploy/ for other programs than ours: each
// file is read by the code of the program that it is for, with unknown fields refused.
// What the files say about the proxy itself is tested with the proxy.
package deploy
