module github.com/seed90641741/spillway/spillaws

go 1.26.0

require (
	github.com/aws/aws-sdk-go-v2 v1.47.6
	github.com/aws/smithy-go v1.28.8
	github.com/seed90641741/spillway v0.1.0
)

replace github.com/seed90641741/spillway => ..
