package spillgrpc

import (
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	"github.com/seed90641741/spillway/ingress"
)

// The status of a rejection names the gate to internal callers, and not to clients at an edge.
func TestRejectionNamesTheGate(t *testing.T) {
	quota, shed := ingress.Config{Quota: none()}, swamped
	for name, row := range map[string]struct {
		gates ingress.Config
		what  string
		gate  string
	}{
		"quota": {quota, "over quota", "quota"},
		"shed":  {shed, "overloaded", "shed"},
	} {
		for _, boundary := range []ingress.Boundary{ingress.Edge, ingress.Internal} {
			inBubble(t, func(t *testing.T) {
				row.gates.Trust = ingress.Trust{Boundary: boundary}
				s := mustServer(t, row.gates, ServerConfig{})
				cc := open(t, &service{}, s.Options()...).dial()
				_ = call(t.Context(), cc) // the burst of the quota
				for range 3 {             // the last one by the tap, where that answers
					got := status.Convert(call(t.Context(), cc))
					text, gate := row.what, ""
					if boundary == ingress.Internal {
						text, gate = row.what+" ("+row.gate+")", row.gate
					}
					if got.Message() != text || gateIn(got) != gate {
						t.Errorf("%s, boundary %v: %q with gate %q, want %q with %q", name, boundary, got.Message(), gateIn(got), text, gate)
					}
				}
			})
		}
	}
}

// gateIn returns the gate that the details of a status name.
func gateIn(s *status.Status) string {
	for _, d := range s.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info.GetMetadata()[metadataGate]
		}
	}
	return ""
}
