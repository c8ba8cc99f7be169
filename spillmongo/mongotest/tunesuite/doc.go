// Package tunesuite tests package mongotune with the server of package mongotest.
package tunesuite
