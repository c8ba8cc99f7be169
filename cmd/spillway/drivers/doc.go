// Package drivers holds tests of "spillway proxy" with drivers of MongoDB as their
// users have them: the one of today, and one from before backpressure. It is a module
// of its own, so that nobody else needs two drivers.
package drivers
