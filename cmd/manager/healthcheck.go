package main

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// maxAnswer is how much of an answer a healthcheck prints.
const maxAnswer = 4 << 10

func healthcheck() *cobra.Command {
	url, timeout := "", 2*time.Second
	cmd := &cobra.Command{
		Use: "healthcheck", Short: "Exit with 0 if a manager is ready", Args: cobra.NoArgs,
		Long: "healthcheck asks a manager whether it is ready. It exits with 1, and prints what is not ready, if the answer is not 200 or takes too long. " +
			"It is for containers without a shell.",
		Example: "  manager healthcheck --url http://127.0.0.1:8081/healthz",
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			request, err := http.NewRequestWithContext(cmd.Context(), http.MethodGet, url, nil)
			if err != nil {
				return err
			}
			answer, err := (&http.Client{Timeout: timeout}).Do(request)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, answer.Body.Close()) }()
			text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
			if err != nil {
				return fmt.Errorf("reading the answer: %w", err)
			}
			if answer.StatusCode != http.StatusOK {
				return fmt.Errorf("%s answers %s: %s", url, answer.Status, strings.TrimSpace(string(text)))
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&url, "url", "http://127.0.0.1:8081/readyz", "what to ask: /readyz or /healthz of HEALTH_ADDR")
	cmd.Flags().DurationVar(&timeout, "timeout", timeout, "how long to wait for the answer")
	return cmd
}
