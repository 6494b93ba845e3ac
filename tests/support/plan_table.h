// The header of tables of measured plans, as `shardscape validate` reads them.
#pragma once

namespace shardscape::test {

constexpr const char* kPlanHeader =
    "id,phase,model,cluster,stack,gpus,tensor_parallel,sequence_parallel,context_parallel,pipeline_parallel,"
    "data_parallel,zero_stage,recompute,schedule,virtual_stages,microbatch_size,num_microbatches,"
    "global_batch,sequence_length,prompt_tokens,output_tokens,concurrency,measured_step_time_s,"
    "measured_memory_peak_bytes,measured_oom,measured_ttft_s,measured_itl_s,measured_e2e_s,source\n";

}  // namespace shardscape::test
