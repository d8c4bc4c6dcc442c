//go:build !linux

package node

import (
	"context"
	"errors"
	"io"
	"syscall"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
	"github.com/kubeop/kubeop/e2e/cluster/internal/network"
)

var errOtherSystem = errors.New("a real node needs Linux")

// Possible returns that only Linux can have real nodes. The other functions of this file are never called.
func Possible() error { return errOtherSystem }

// Install is not reached.
func Install(context.Context, io.Writer) (Tools, error) { return Tools{}, errOtherSystem }

// ChoosePlan is not reached.
func ChoosePlan() (network.Plan, error) { return network.Plan{}, errOtherSystem }

// Init is not reached.
func Init(layout.Dir, io.Reader) error { return errOtherSystem }

// Enclose is not reached.
func (n Node) Enclose(int) error { return errOtherSystem }

// Connect is not reached.
func (n Node) Connect(int) error { return errOtherSystem }

// Remove has nothing to remove.
func Remove(layout.Node) error { return nil }

func onOverlay(string) bool { return false }

func attributes() *syscall.SysProcAttr { return nil }

// FindTools is not reached.
func FindTools() (Tools, error) { return Tools{}, errOtherSystem }

// Programs has nothing to find.
func Programs(layout.Node) map[string]int { return nil }
