package claims

import "slices"

// The methods of the health service of gRPC.
const (
	healthCheck = "/grpc.health.v1.Health/Check"
	healthWatch = "/grpc.health.v1.Health/Watch"
)

// Health returns a copy of the names of health checks: methods, procedures or paths. Where Check of the health service of gRPC is one, so
// is Watch, by which other clients ask the same.
func Health(names []string) []string {
	names = slices.Clone(names)
	if slices.Contains(names, healthCheck) && !slices.Contains(names, healthWatch) {
		names = append(names, healthWatch)
	}
	return names
}
