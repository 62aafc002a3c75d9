package k8sworld_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/leadership-journal/journald/cmd/journald/internal/k8sworld"
	"github.com/leadership-journal/journald/internal/testenv"
	"github.com/leadership-journal/journald/scenario"
)

var kube testenv.SharedKubernetes

func TestMain(m *testing.M) { os.Exit(kube.Run(m)) }

// TestScenariosOnConfigMaps runs the project's scenarios on ConfigMaps of a real API server, and those files that
// JOURNALD_SCENARIOS names, as `make test` does with what stands beside the checkout.
func TestScenariosOnConfigMaps(t *testing.T) {
	config := kube.Config(t)
	backend, err := k8sworld.New(config, testenv.Namespace(t, config), slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	pattern := "../../../../scenarios/*.yaml"
	if p := os.Getenv("SCENARIOS"); p != "" {
		pattern = p
	}
	files, err := filepath.Glob(pattern)
	require.NoError(t, err)
	require.NotEmpty(t, files)
	files = append(files, strings.Fields(os.Getenv("JOURNALD_SCENARIOS"))...)
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			s, err := scenario.LoadFile(file)
			require.NoError(t, err)
			require.NoError(t, scenario.Run(t.Context(), s, scenario.Options{Backend: backend}))
		})
	}
}
