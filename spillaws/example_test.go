package spillaws_test

import (
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/seed90641741/spillway/spillaws"
)

// All clients that are made from a configuration retry through one Retryer.
func ExampleInstall() {
	cfg := aws.Config{Region: "eu-west-1", RetryMaxAttempts: 5}
	if _, err := spillaws.Install(&cfg, spillaws.Config{}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(cfg.Retryer().MaxAttempts())
	// Output: 5
}
