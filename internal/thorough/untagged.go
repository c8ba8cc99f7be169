//go:build !thorough

package thorough

const tagged = false
