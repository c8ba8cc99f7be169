// Package drivers tests "spillway proxy" with released MongoDB drivers (a current one, and one
// from before backpressure), and "spillway tune" with a server of package mongotest. It is a
// separate module, so that the program requires neither two drivers nor a server for tests. The
// old driver is compiled for thorough tests only.
package drivers
