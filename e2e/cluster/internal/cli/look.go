package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/e2e/cluster/internal/layout"
)

func newKubeconfig(open opener) *cobra.Command {
	return &cobra.Command{
		Use: "kubeconfig", Short: "Print the path of the administrator's kubeconfig", Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, state, err := open.running()
			if err != nil {
				return err
			}
			fmt.Println(state.Kubeconfig)
			return nil
		},
	}
}

func newLogs(open opener) *cobra.Command {
	var follow bool
	command := &cobra.Command{
		Use: "logs [component]", Short: "Print a component's log, or list the logs there are", Args: cobra.MaximumNArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := open()
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return listLogs(dir)
			}
			return printLog(dir.Log(filepath.Base(args[0])), follow)
		},
	}
	command.Flags().BoolVarP(&follow, "follow", "f", false, "go on printing what is added")
	return command
}

func listLogs(dir layout.Dir) error {
	files, err := filepath.Glob(dir.Log("*"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no logs in %s", dir.Path("logs"))
	}
	for _, file := range files {
		fmt.Println(strings.TrimSuffix(filepath.Base(file), ".log"))
	}
	return nil
}

func printLog(path string, follow bool) error {
	log, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("opening the log (\"cluster logs\" lists them): %w", err)
	}
	defer log.Close()
	for {
		if _, err := io.Copy(os.Stdout, log); err != nil {
			return fmt.Errorf("reading the log: %w", err)
		}
		if !follow {
			return nil
		}
		time.Sleep(200 * time.Millisecond)
	}
}
