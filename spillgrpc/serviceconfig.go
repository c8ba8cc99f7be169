package spillgrpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"
)

// serviceConfig is what is read of one.
type serviceConfig struct {
	MethodConfig    []jsonMethod    `json:"methodConfig"`    //nolint:tagliatelle // as protobuf has it
	RetryThrottling *jsonThrottling `json:"retryThrottling"` //nolint:tagliatelle // as protobuf has it
}

type jsonMethod struct {
	Name          []jsonName       `json:"name"`
	RetryPolicy   *jsonRetryPolicy `json:"retryPolicy"`   //nolint:tagliatelle // as protobuf has it
	HedgingPolicy *json.RawMessage `json:"hedgingPolicy"` //nolint:tagliatelle // as protobuf has it
}

type jsonName struct {
	Service string `json:"service"`
	Method  string `json:"method"`
}

func (n jsonName) path() (string, error) {
	switch {
	case n.Service != "":
		return "/" + n.Service + "/" + n.Method, nil
	case n.Method != "":
		return "", fmt.Errorf("name has the method %q without a service", n.Method)
	default:
		return "", nil
	}
}

type jsonThrottling struct {
	MaxTokens  float64 `json:"maxTokens"`  //nolint:tagliatelle // as protobuf has it
	TokenRatio float64 `json:"tokenRatio"` //nolint:tagliatelle // as protobuf has it
}

type jsonRetryPolicy struct {
	MaxAttempts           int              `json:"maxAttempts"`           //nolint:tagliatelle // as protobuf has it
	InitialBackoff        duration         `json:"initialBackoff"`        //nolint:tagliatelle // as protobuf has it
	MaxBackoff            duration         `json:"maxBackoff"`            //nolint:tagliatelle // as protobuf has it
	BackoffMultiplier     float64          `json:"backoffMultiplier"`     //nolint:tagliatelle // as protobuf has it
	RetryableStatusCodes  []codes.Code     `json:"retryableStatusCodes"`  //nolint:tagliatelle // as protobuf has it
	PerAttemptRecvTimeout *json.RawMessage `json:"perAttemptRecvTimeout"` //nolint:tagliatelle // as protobuf has it
}

// check expects what gRFC A6 does.
func (c jsonRetryPolicy) check() error {
	switch {
	case c.MaxAttempts < 2:
		return fmt.Errorf("maxAttempts is %d, must be at least 2", c.MaxAttempts)
	case c.InitialBackoff <= 0:
		return fmt.Errorf("initialBackoff is %v, must be above 0", time.Duration(c.InitialBackoff))
	case c.MaxBackoff <= 0:
		return fmt.Errorf("maxBackoff is %v, must be above 0", time.Duration(c.MaxBackoff))
	case c.BackoffMultiplier <= 0:
		return fmt.Errorf("backoffMultiplier is %v, must be above 0", c.BackoffMultiplier)
	case len(c.RetryableStatusCodes) == 0:
		return errors.New("retryableStatusCodes is empty, must have a code")
	default:
		return nil
	}
}

// A duration is one of protobuf in JSON: "1.5s".
type duration time.Duration

// UnmarshalJSON implements [json.Unmarshaler].
func (d *duration) UnmarshalJSON(text []byte) error {
	var p durationpb.Duration
	if err := protojson.Unmarshal(text, &p); err != nil {
		return fmt.Errorf("%.32s is no duration such as \"1.5s\"", text)
	}
	*d = duration(p.AsDuration())
	return nil
}
