package machine

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

func write(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestModel(t *testing.T) {
	for text, want := range map[string]string{
		"processor\t: 0\nmodel name\t: Some  CPU @ 2 GHz\nmodel name\t: Other\n": "Some CPU @ 2 GHz",
		"processor: 0\n": "unknown",
		"":               "unknown",
	} {
		if got := model(write(t, text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := model("/nowhere/at/all"); got != "unknown" {
		t.Errorf("no file: %q", got)
	}
	if d := Describe(); d.Processors != runtime.NumCPU() || d.GOMAXPROCS != runtime.GOMAXPROCS(0) || d.Go == "" || d.CPU == "" {
		t.Errorf("%+v", d)
	}
}

func TestStalled(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"some avg10=0.00 avg60=1.00 avg300=0.25 total=1500\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n": 1500 * time.Microsecond,
		"full avg10=0.00 total=7\n": -1,
		"":                          -1,
	} {
		got, ok := stalled(write(t, text))
		if !ok {
			got = -1
		}
		if got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
	if _, ok := stalled("/nowhere/at/all"); ok {
		t.Error("a missing file was read")
	}
	if p := Pressure()(); p != nil && *p < 0 {
		t.Errorf("pressure %v", *p)
	}
}

// A child runs on the last processor, and its processor time is known.
func TestSeparate(t *testing.T) {
	a, err := Separate()
	if err != nil {
		t.Skip(err)
	}
	defer a.End()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "grep Cpus_allowed_list /proc/self/status; read line")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Start(cmd); err != nil {
		t.Fatal(err)
	}
	line := make([]byte, 100)
	n, err := out.Read(line)
	if err != nil {
		t.Error(err)
	}
	if used := ProcessorTime(cmd.Process.Pid); used <= 0 {
		t.Errorf("the child has used %v", used)
	}
	_ = in.Close()
	_ = cmd.Wait() // "read" fails at the end of its input
	if want := a.server.Count(); want != 1 || n == 0 {
		t.Errorf("%d processors for the child, which says %q", want, line[:n])
	}
	if used := ProcessorTime(cmd.Process.Pid); used != 0 {
		t.Errorf("a process that has ended uses %v", used)
	}
}
