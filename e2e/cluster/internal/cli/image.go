package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kubeop/kubeop/e2e/cluster/internal/image"
)

func newImage(open opener) *cobra.Command {
	command := &cobra.Command{Use: "image", Short: "Put container images into the cluster's registry"}
	command.AddCommand(newImagePush(open))
	return command
}

func newImagePush(open opener) *cobra.Command {
	var name string
	command := &cobra.Command{
		Use: "push --name REPOSITORY:TAG BINARY [MORE]...", Args: cobra.MinimumNArgs(1),
		Short: "Make an image of a static binary, with more beside it, push it and print the reference to use in a pod",
		RunE: func(_ *cobra.Command, args []string) error {
			_, state, err := open.running()
			if err != nil {
				return err
			}
			if state.Registry == nil {
				return errors.New("this cluster runs no registry: start it with \"cluster up --registry\"")
			}
			reference, err := image.Push(state.Registry.Host, name, args[0], args[1:]...)
			if err != nil {
				return err
			}
			fmt.Println(reference)
			return nil
		},
	}
	command.Flags().StringVar(&name, "name", "", "repository and tag of the image, for example demo:v1")
	_ = command.MarkFlagRequired("name")
	return command
}
