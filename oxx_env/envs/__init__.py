"""The environments: PettingZoo parallel and AEC, Gymnasium, and a batch for stable-baselines3.

    parallel.BaronOxxParallel   PettingZoo ParallelEnv      `baron_oxx_v0.parallel_env`
    aec.BaronOxxAEC             PettingZoo AECEnv           `baron_oxx_v0.env`
    single.BaronOxxSingle       Gymnasium, against bots     `gymnasium.make("oxx_env/BaronOxx-v0")`
    gym_vector.BaronOxxVectorEnv  many of these at once     `gymnasium.make_vec(...)`
    vector.BaronOxxVecEnv       the same for stable-baselines3

Nothing is imported here: `vector` needs stable-baselines3, the others do not.
"""
