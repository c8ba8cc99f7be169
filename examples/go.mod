module github.com/seed90641741/spillway/examples

go 1.26.0

require github.com/seed90641741/spillway v0.0.0

replace github.com/seed90641741/spillway => ..
