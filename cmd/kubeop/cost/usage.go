package cost

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/output"
	"github.com/kubeop/kubeop/cmd/kubeop/server"
)

// using are the flags of the command usage.
type using struct {
	app, step   string
	from, until string
	format      output.Format
}

// Usage returns the command usage.
func Usage(c *call.Call) *cobra.Command {
	var u using
	command := &cobra.Command{
		Use:   "usage",
		Short: "Show what apps use",
		Long: `Show what apps use, as the management API of a manager has measured it: requested and used CPU and memory, storage, load balancers and pods. Without
--from it is about today, in UTC. --tenant and --project say of which tenant and project. MISSING has how many minutes of an amount were not measured.`,
		Example: `  # Today, by hour
  kubeop usage --tenant acme --server https://kubeop.example.com

  # An app, by day
  kubeop usage -t acme -p shop --app web --from 2026-11-01 --until 2026-12-01 --step day`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return u.show(cmd.Context(), c) },
	}
	flags := command.Flags()
	flags.StringVar(&u.app, "app", "", "only of this app (default: all)")
	flags.StringVar(&u.from, "from", "", "day, or hour as 2026-11-01T15:00:00Z, in UTC (default: the day of --until)")
	flags.StringVar(&u.until, "until", "", "day or hour that is not counted any more (default: the next hour)")
	flags.StringVar(&u.step, "step", "hour", "what is summed up: hour, day or month")
	u.format.AddFlag(command, output.Table, output.JSON, output.YAML)
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("step", cobra.FixedCompletions([]string{"hour", "day", "month"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// perPage is how many items are asked for at once.
const perPage = 500

func (u *using) show(ctx context.Context, c *call.Call) error {
	wanted := client.ListUsageParams{Tenant: c.Tenant, Project: c.Project, App: u.app, Step: client.ListUsageParamsStep(u.step), Limit: perPage}
	var err error
	if wanted.From, err = timeOf(u.from); err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	if wanted.Until, err = timeOf(u.until); err != nil {
		return fmt.Errorf("--until: %w", err)
	}
	manager, err := server.Connect(c.Manager, "knows what apps use")
	if err != nil {
		return err
	}
	all := &client.Page{}
	all.Items, err = client.All(func(cursor string) ([]client.Usage, string, error) {
		wanted.Cursor = cursor
		answer, err := manager.ListUsage(ctx, wanted)
		if err != nil {
			return nil, "", err
		}
		all.Gaps = append(all.Gaps, answer.Body.Gaps...) // They are on the first page.
		return answer.Body.Items, answer.Body.Next, nil
	})
	if err != nil {
		return fmt.Errorf("reading what is used: %w", manager.Explained(err))
	}
	if u.format.ForPrograms() {
		return u.format.Write(c.Data, all)
	}
	return u.table(c, all)
}

// timeOf reads a day or an hour.
func timeOf(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil {
		return day, nil
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, fmt.Errorf("%q is no time: write a day as 2026-11-01, or an hour as 2026-11-01T15:00:00Z", text)
	}
	return at, nil
}

func (u *using) table(c *call.Call, all *client.Page) error {
	if len(all.Items) == 0 {
		if _, err := fmt.Fprintln(c.Err, "Nothing was used."); err != nil {
			return err
		}
	} else if err := u.columns(all.Items).Write(c.Out, ""); err != nil {
		return err
	}
	for _, gap := range all.Gaps {
		if _, err := fmt.Fprintf(c.Err, "%d minutes of %s were not measured between %s and %s: %s\n",
			gap.Minutes, gap.Cluster, gap.From.Format(time.RFC3339), gap.Until.Format(time.RFC3339), strings.Join(gap.Meters, ", ")); err != nil {
			return err
		}
	}
	return nil
}

func (u *using) columns(items []client.Usage) *output.Columns {
	layout := map[string]string{"day": time.DateOnly, "month": "2006-01"}[u.step]
	columns := &output.Columns{}
	columns.Add("FROM", "OF", "METER", "AMOUNT", "UNIT", "MISSING")
	for i := range items {
		item := &items[i]
		for _, amount := range item.Meters {
			missing := ""
			if amount.Missing > 0 {
				missing = fmt.Sprint(amount.Missing)
			}
			columns.Add(item.From.Format(cmp.Or(layout, "2006-01-02T15:04Z")), strings.TrimSuffix(item.Tenant+"/"+item.Project+"/"+item.App, "/"), amount.Name, amount.Amount, amount.Unit, missing)
		}
	}
	return columns
}
