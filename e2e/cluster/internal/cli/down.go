package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/e2e/cluster/internal/boot"
	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

func newDown(open opener) *cobra.Command {
	return &cobra.Command{
		Use: "down", Short: "Stop the cluster and remove every trace of it", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			dir, err := open()
			if err != nil {
				return err
			}
			if !dir.Owned() {
				fmt.Printf("No cluster in %s.\n", dir)
				return nil
			}
			began := time.Now()
			if err := down(dir); err != nil {
				return err
			}
			fmt.Printf("Removed the cluster in %s in %.1f s.\n", dir, time.Since(began).Seconds())
			return nil
		},
	}
}

func down(dir layout.Dir) error {
	if err := boot.Stop(dir); err != nil {
		return err
	}
	return boot.Remove(dir)
}
