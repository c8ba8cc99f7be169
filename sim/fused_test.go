package sim

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed90641741/spillway/internal/race"
	"github.com/seed90641741/spillway/internal/thorough"
)

// fused is an instruction that rounds a product and a sum at once.
var fused = regexp.MustCompile(`\tFN?M(?:ADD|SUB)[DS]\t`)

// The compiler may fuse a product and a sum on some machines, and does so on arm64. A
// policy that compares what comes out with a bound then decides otherwise there, and so
// the same seed has other bytes. A conversion, float64(x*y), forbids it.
func TestNothingIsFused(t *testing.T) {
	if !thorough.Enabled() || race.Enabled {
		t.Skip("compiles for another machine")
	}
	packages := strings.Fields(tool(t, "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "."))
	packages = slices.DeleteFunc(packages, func(p string) bool { return strings.HasSuffix(p, "/load") }) // is modelled
	if len(packages) < 10 {
		t.Fatalf("the simulator and its policies are %q", packages)
	}
	assembly := tool(t, append([]string{"build", "-gcflags=-S"}, packages...)...)
	if !strings.Contains(assembly, "\tFMULD\t") {
		t.Fatal("the compiler wrote no assembly")
	}
	for line := range strings.Lines(assembly) {
		if fused.MatchString(line) {
			t.Error(strings.TrimSpace(line))
		}
	}
}

func tool(t *testing.T, args ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), "go", args...)
	c.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%.2000s", c, err, out)
	}
	return string(out)
}
