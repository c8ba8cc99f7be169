package main

import (
	"errors"
	"reflect"
	"strings"
	"time"

	"github.com/seed90641741/spillway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/config"
	"github.com/seed90641741/spillway/cmd/spillway/internal/gateway/exporters"
	"github.com/seed90641741/spillway/internal/admin"
	"github.com/seed90641741/spillway/internal/admin/decisions"
	"github.com/seed90641741/spillway/internal/admin/settings"
	"github.com/seed90641741/spillway/internal/telemetry"
)

// operate opens the address for operators, from the flag or the configuration.
func (s *supervisor) operate(flag string, decided *decisions.Log, wall func(time.Time) time.Time) error {
	s.use(s.now)
	err := s.start(flag, config.DefaultAdmin, s.now.Admin, &admin.Config{
		Collector: s.collector, Decisions: decided, Source: s, Program: s, Logger: s.follower.logger, Wall: wall,
	})
	if err != nil {
		return err
	}
	if s.exporter, err = exporters.Start(s.now.Otel, version(), exporters.Registry(s.server.State, true), s.follower.logger); err != nil {
		s.close()
	}
	return err
}

// put puts a configuration in place. It discards changes that were made over the API.
func (s *supervisor) put(c *config.Config) error {
	if err := s.proxy.Update(c); err != nil {
		return err
	}
	s.now = c
	s.log.set(c)
	if was := s.override.Swap(nil); was != nil {
		s.follower.logger.Warn("a change over the API is dropped", "field", was.Field, "was", was.Value, "is", string(c.Defaulted().Mode))
	}
	s.operators.update(c.Admin)
	if !reflect.DeepEqual(s.config.Load().Otel, c.Otel) {
		s.follower.logger.Warn("otel counts from the next start on")
	}
	s.use(c)
	return nil
}

// use sets the configuration that is in use. MongoDB commands pass the gates once per
// attempt, so they are collected by their end.
func (s *supervisor) use(c *config.Config) {
	s.config.Store(c)
	s.settings.Store(new(gateway.Settings(*c, *c.Defaulted())))
	s.events.use(listenersOf(c.Defaulted())...)
	var byEnd []string
	for _, m := range c.Defaulted().Mongo {
		byEnd = append(byEnd, m.Name)
	}
	s.collector.ByEnd(byEnd...)
}

func (s *supervisor) close() {
	s.operators.close()
	s.exporter.Close() // last, so that it sends the last figures
}

// Levels implements [admin.Source].
func (s *supervisor) Levels(now time.Time) admin.Levels {
	l, access := gateway.Levels(s.proxy, s.config.Load().Defaulted(), now)
	l.Override, l.Draining = s.override.Load(), errors.Is(s.Ready(), errEnds)
	if l.Override != nil { // since the levels were read
		_ = l.Mode.UnmarshalText([]byte(l.Override.Value)) // that of a Mode
	}
	l.Notices, l.Changes = s.events.read(now)
	if headline, text, wrong := s.control.Status(now).Notice(); wrong {
		l.Notices = append(l.Notices, admin.Notice{Kind: telemetry.NoticeControlPlane, Headline: headline, Text: text})
	}
	addLog(&l, "program", "log", s.log.lines.Stats())
	addLog(&l, "access", "access log", access)
	return l
}

// SetMode implements [admin.Program].
func (s *supervisor) SetMode(mode spillway.Mode) (kept []string, err error) {
	err = s.do(func() error {
		var wanted *config.Config
		wanted, kept = s.now.WithMode(mode)
		if err := s.proxy.Update(wanted); err != nil {
			return err
		}
		s.use(wanted)
		s.events.note(false, "mode "+mode.String())
		changes := config.Diff(s.now.Defaulted(), wanted.Defaulted())
		if len(changes) == 0 {
			s.override.Store(nil)
			return nil
		}
		s.override.Store(&admin.Override{Field: "mode", Value: mode.String(), File: string(s.now.Defaulted().Mode), Since: time.Now()})
		s.follower.logger.Warn("the mode differs from the configuration until that is next read", "mode", mode.String(), "changes", strings.Join(changes, "; "))
		return nil
	})
	return kept, err
}

// Reload implements [admin.Program].
func (s *supervisor) Reload() error {
	return s.do(func() error {
		if s.file == "" { // what the command line says
			return s.put(s.now)
		}
		return s.read("the API")
	})
}

// Ready implements [admin.Source].
func (s *supervisor) Ready() error {
	if err := s.ended(); err != nil {
		return err
	}
	if !s.proxy.Serving() {
		return errors.New("nothing listens")
	}
	return nil
}

// Settings implements [admin.Program].
func (s *supervisor) Settings() []settings.Setting { return *s.settings.Load() }
