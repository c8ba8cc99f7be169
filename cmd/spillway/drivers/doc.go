// Package drivers tests "spillway proxy" with released MongoDB drivers: a current one,
// and one from before backpressure. It is a separate module, so that other modules do
// not require two drivers. The old one is compiled for thorough tests only.
package drivers
