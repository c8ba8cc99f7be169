module github.com/seed90641741/spillway/cmd/spillway/proxybench

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	golang.org/x/sys v0.48.0
)
