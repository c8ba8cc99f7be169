//go:build !linux

package main

import (
	"errors"
	"os/exec"
	"time"
)

type affinity struct{}

func separate() (affinity, error) { return affinity{}, errors.New("this needs Linux") }

func (affinity) start(cmd *exec.Cmd) error { return cmd.Start() }

func processorTime(int) time.Duration { return 0 }
