// Package cost has the command that shows what a tenant pays.
package cost

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/api/client"
	"github.com/kubeop/kubeop/cmd/kubeop/call"
	"github.com/kubeop/kubeop/cmd/kubeop/server"
)

// options are the flags of the command.
type options struct{ month, by string }

// Command returns the command cost.
func Command(c *call.Call) *cobra.Command {
	var o options
	command := &cobra.Command{
		Use:   "cost",
		Short: "Show what a tenant pays for a month",
		Long: `Show what a tenant pays for a month: its invoice if the month is closed, or else what the invoice would be now. Of the running month it also
shows what the invoice will be if usage goes on as in the last day. It asks the management API of a manager.`,
		Example: `  # The running month
  kubeop cost --tenant acme --server https://kubeop.example.com

  # A month by app
  kubeop cost --tenant acme --month 2026-10 --by app`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return show(cmd.Context(), c, o) },
	}
	command.Flags().StringVar(&o.month, "month", "", "calendar month in UTC, such as 2026-10 (default: the running month)")
	command.Flags().StringVar(&o.by, "by", "", "what to sum up by: app (default: meter)")
	// It fails only for a flag that does not exist.
	_ = command.RegisterFlagCompletionFunc("by", cobra.FixedCompletions([]string{"app"}, cobra.ShellCompDirectiveNoFileComp))
	return command
}

// months is how many invoices and credit notes of a month are read.
const months = 500

func show(ctx context.Context, c *call.Call, o options) error {
	switch {
	case o.by != "" && o.by != "app":
		return errors.New("--by: it is app, or left out")
	case c.Project != "":
		return errors.New("--project is not for this command: an invoice is of a tenant")
	}
	manager, err := server.Connect(c.Manager, "knows what usage costs")
	if err != nil {
		return err
	}
	if o.month == "" {
		o.month = c.Clock.Now().UTC().Format("2006-01")
	}
	answer, err := manager.ListInvoices(ctx, client.ListInvoicesParams{Tenant: c.Tenant, Month: o.month, Limit: months})
	if err != nil {
		return fmt.Errorf("reading the invoices: %w", manager.Explained(err))
	}
	list := &answer.Body
	if c.Tenant == "" && list.Draft.Month == "" && list.NoDraft == "" {
		return errors.New("name the tenant with --tenant")
	}
	is := invoiceOf(list.Items)
	if is == nil {
		return draft(c, list, o)
	}
	invoice, err := manager.GetInvoice(ctx, strconv.FormatInt(is.Number, 10), client.GetInvoiceParams{})
	if err != nil {
		return fmt.Errorf("reading the invoice %d: %w", is.Number, manager.Explained(err))
	}
	return closed(c, &invoice.Body, list.Items, o)
}

// invoiceOf returns the newest invoice, nil if there is none.
func invoiceOf(all []client.InvoiceSummary) *client.InvoiceSummary {
	for i := range all {
		if all[i].Credits == 0 {
			return &all[i]
		}
	}
	return nil
}
