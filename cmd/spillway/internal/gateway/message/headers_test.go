package message

import (
	"maps"
	"net/http"
	"slices"
	"testing"
)

// TestSanitize: names that only services inside set are removed, however they are written; others
// stay, and so does the one that is trusted.
func TestSanitize(t *testing.T) {
	h := make(http.Header)
	for _, name := range []string{
		"X-Envoy-Internal", "X-Real-Ip", "X_Real_Ip", "X-Request-Start", "X_request_Start", "X-Forwarded-Port", "Forwarded",
		"Grpc-Previous-Rpc-Attempts", "Amz-Sdk-Request", "X-Forwarded-User", "X-Requested-With", "X-Real-Ip-Old", "Grpc-Timeout", "Accept", "",
	} {
		h[name] = []string{"1"}
	}
	Sanitize(h, func(name string) bool { return name == "X-Forwarded-User" })
	want := []string{"", "Accept", "Grpc-Timeout", "X-Forwarded-User", "X-Real-Ip-Old", "X-Requested-With"}
	if got := slices.Sorted(maps.Keys(h)); !slices.Equal(got, want) {
		t.Errorf("%q stay, want %q", got, want)
	}
}

// A service of AWS, or one that does as S3 does, rejects a request without a header that is signed.
func TestSanitizeKeepsWhatIsSigned(t *testing.T) {
	for _, row := range []struct {
		authorization string
		stays         bool
	}{
		{"AWS4-HMAC-SHA256 Credential=AKID/20261127/eu-west-1/s3/aws4_request, SignedHeaders=accept-encoding;amz-sdk-request;host, Signature=ab", true},
		{"AWS4-HMAC-SHA256 Credential=AKID/20261127/eu-west-1/s3/aws4_request,SignedHeaders=amz-sdk-request,Signature=ab", true},
		{"AWS4-ECDSA-P256-SHA256 Credential=AKID, SignedHeaders=host;amz-sdk-request, Signature=ab", true},
		{"AWS4-HMAC-SHA256 Credential=AKID, SignedHeaders=amz-sdk-request-id;host, Signature=ab", false},
		{"AWS4-HMAC-SHA256 Credential=AKID", false},
		{"Bearer SignedHeaders=amz-sdk-request", false},
		{"", false},
	} {
		h := http.Header{"Authorization": {row.authorization}, "Amz-Sdk-Request": {"attempt=1; max=3"}, "X-Envoy-Internal": {"1"}}
		Sanitize(h, func(string) bool { return false })
		if _, stays := h["Amz-Sdk-Request"]; stays != row.stays || h["X-Envoy-Internal"] != nil {
			t.Errorf("%q: %v", row.authorization, h)
		}
	}
}

func TestSanitizeBaggage(t *testing.T) {
	for _, row := range []struct{ came, want []string }{
		{nil, nil},
		{[]string{"criticality=CRITICAL"}, nil},
		{[]string{"a=1, criticality=CRITICAL;p=1 ,b=2"}, []string{"a=1,b=2"}},
		{[]string{"a=1", "criticality = SHEDDABLE", "b=2"}, []string{"a=1,b=2"}},
		{[]string{"xcriticality=1"}, []string{"xcriticality=1"}},
	} {
		h := http.Header{}
		if row.came != nil {
			h["Baggage"] = row.came
		}
		if Sanitize(h, func(string) bool { return false }); !slices.Equal(h["Baggage"], row.want) {
			t.Errorf("%q: %q, want %q", row.came, h["Baggage"], row.want)
		}
	}
}
