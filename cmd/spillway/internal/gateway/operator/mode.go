package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"github.com/alecthomas/kong"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/internal/admin/forecast"
)

// ModeCommand has the arguments of "spillway mode".
type ModeCommand struct {
	Mode string `arg:"" optional:"" enum:",off,observe,enforce,file" default:"" help:"New mode: off, observe or enforce; file: that of the configuration, which is read again. Without it the current mode is printed."`
	flags
	Yes bool `help:"Change to enforce or file without a question."`
}

// Help returns what is added to the help of the command.
func (ModeCommand) Help() string {
	return "Changes the mode of a running proxy until its configuration is next read. In an incident:\n\n" +
		"    spillway mode observe\n\n" +
		"has all gates let every request pass, and \"spillway mode file\" undoes it. A change to enforce or file first prints what mode enforce would reject, " +
		"as gates in observe mode have counted, and asks. Without a terminal it needs --yes."
}

// state is what the state of a proxy says about its mode.
type state struct {
	Mode     spillway.Mode     `json:"mode"`
	Override *override         `json:"override"`
	Mean     *forecast.Figures `json:"mean"`
}

// override is a mode that was set over the API.
type override struct {
	File string `json:"file"` // the mode in the configuration
}

func (s *state) String() string {
	text := "mode " + s.Mode.String()
	if s.Override != nil {
		text += " until the configuration is next read, which says " + s.Override.File
	}
	return text + "\n" + s.Mean.Words(s.Mode) + "\n"
}

// Run prints or changes the mode. Observe, the emergency switch, does not read the state first.
func (c *ModeCommand) Run(ctx context.Context, k *kong.Context) error {
	to, err := c.client(c.Mode != "")
	if err != nil {
		return err
	}
	if c.Mode == "" {
		now, err := stateOf(ctx, to)
		if err == nil {
			_, err = io.WriteString(k.Stdout, now.String())
		}
		return err
	}
	path, asks := "/api/v1/mode", c.Mode == spillway.ModeEnforce.String()
	if c.Mode == "file" {
		path, asks = "/api/v1/reload", true
	}
	if asks && !c.Yes {
		if err := confirm(ctx, to, k.Stderr); err != nil {
			return err
		}
	}
	answer, err := to.ask(ctx, http.MethodPost, path, c.Mode)
	if err == nil {
		_, err = io.WriteString(k.Stdout, answer)
	}
	return err
}

func stateOf(ctx context.Context, from *client) (*state, error) {
	answer, err := from.ask(ctx, http.MethodGet, "/api/v1/state", "")
	if err != nil {
		return nil, err
	}
	var s state
	if err := json.Unmarshal([]byte(answer), &s); err != nil || s.Mean == nil {
		return nil, fmt.Errorf("%s does not answer as a proxy of this version does", from.address)
	}
	return &s, nil
}

// confirm shows what the change will reject, and asks whether to go on: also where the mode seems to be enforce already, as
// the state is up to a second old.
func confirm(ctx context.Context, to *client, out io.Writer) error {
	now, err := stateOf(ctx, to)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, now.Mean.Words(now.Mode))
	return confirmed(ctx, out)
}
