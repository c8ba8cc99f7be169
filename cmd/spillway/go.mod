module github.com/seed90641741/spillway/cmd/spillway

go 1.26.0

require (
	github.com/alecthomas/kong v1.17.0
	github.com/seed90641741/spillway v0.0.0
)

require golang.org/x/sys v0.48.0

replace github.com/seed90641741/spillway => ../..
